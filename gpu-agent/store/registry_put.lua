-- A tensor as its store knows it, whatever the index says. ARGV: name, number of holders,
-- holders…, fields…
local name, n = ARGV[4], tonumber(ARGV[5])
if strange() then return {'REFILL'} end
local have, edited = read(name)
if have and not dead(have) and have.node ~= NODE and not spoilt(name, have, edited) then return answer('ELSEWHERE', name) end
forget(name, have and have.node)
for i = 1, n do redis.call('SADD', holders(name), ARGV[5 + i]) end
write(name, 6 + n)
if edited and redis.call('HGET', key(name), 'error') == '' then
	redis.call('HSET', key(name), 'error', 'somebody else had changed this hash; it is written again')
end
redis.call('SADD', 'tensor-of:' .. NODE, name)
redis.call('SADD', 'tensor-fill:' .. NODE, name)
return {'OK'}
