-- A tensor as its store knows it, whatever the index says. ARGV: name, '1' for a replica, number of holders,
-- holders…, fields…
local name, copy, n = ARGV[4], ARGV[5] == '1', tonumber(ARGV[6])
local fields = fields_at(7 + n)
if strange() then return {'REFILL'} end
local have, edited = read(name)
if not spoilt(name, have, edited) then have = promoted(name, have) end
local here = have and have.node == NODE
local same = have and have.ctime == fields.ctime
if copy and not (here and same) then
	-- Where the first one's agent fills too, it comes yet.
	if not have then return {'WAIT'} end
	if not replicate(name, have, fields) then return {'GONE'} end
	take_holders(name, NODE)
	for i = 1, n do redis.call('SADD', holders(name), holder_at(NODE, ARGV[6 + i])) end
	count(name)
	redis.call('SADD', 'tensor-copied:' .. NODE, name)
	return {'OK'}
end
-- Its replica became the first for somebody who holds it here, and nobody does: the answer to who was to was lost with
-- the connection, as was the word that it is the first.
if copy and n == 0 and have.heir == '1' then
	forget(name, NODE)
	return {'GONE'}
end
local heir = have and have.heir == '1'
if have and not dead(have) and not here and not spoilt(name, have, edited) then return answer('ELSEWHERE', name) end
if same and not edited then
	take_holders(name, '')
	delist('of', have.node, name)
	redis.call('PERSIST', key(name))
	redis.call('HDEL', key(name), 'heir')
else
	forget(name, have and have.node)
end
for i = 1, n do redis.call('SADD', holders(name), ARGV[6 + i]) end
put_fields(name, fields)
if edited and redis.call('HGET', key(name), 'error') == '' then
	redis.call('HSET', key(name), 'error', 'somebody else had changed this hash; it is written again')
end
enlist('of', NODE, name)
redis.call('SADD', 'tensor-fill:' .. NODE, name)
return {copy and (heir and 'HEIR' or 'FIRST') or 'OK'}
