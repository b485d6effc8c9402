-- A command is done: its answer goes out once, and it leaves the list. ARGV: the command as it was
-- taken, its identity or '', the list for the answer or '', the answer or '' (it is somebody else's
-- to answer), the tensor's name where the answer is an error, the error
local raw, id, reply, text, name, fault = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
if redis.call('LREM', 'tensor-taken:' .. NODE, 1, raw) == 0 then return {'GONE'} end
if text == '' then return {'OK'} end
if id ~= '' then redis.call('SET', 'tensor-done:' .. id, 'A' .. text, 'EX', 3600) end
local told = false
if reply ~= '' and kind(reply, 'list') then
	redis.call('LPUSH', reply, text)
	told = true
end
if fault == '' then return {'OK'} end
if name ~= '' and kind(key(name), 'hash') and (not told or redis.call('EXISTS', key(name)) == 1) then
	if redis.call('EXISTS', key(name)) == 0 then
		redis.call('HSET', key(name), 'name', name, 'state', 'error')
		redis.call('EXPIRE', key(name), 3600)
	end
	redis.call('HSET', key(name), 'error', fault)
	told = true
end
if not told then
	redis.call('LPUSH', 'tensor-errors', text)
	redis.call('LTRIM', 'tensor-errors', 0, 999)
end
return {'OK'}
