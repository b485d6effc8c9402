-- A command is another agent's to do. ARGV: the command as it was taken, that agent's node ID, or
-- '': one that has more than so many devices: ARGV[6]
local raw, other = ARGV[4], ARGV[5]
if other == '' then
	for _, node in ipairs(redis.call('SMEMBERS', 'tensor-nodes')) do
		local devices = tonumber(redis.call('HGET', 'node:' .. node, 'devices') or '0') or 0
		if devices > tonumber(ARGV[6]) then other = node end
	end
end
if other == '' or other == NODE or not alive(other) then return {'MISSING'} end
if redis.call('LREM', 'tensor-taken:' .. NODE, 1, raw) == 0 then return {'GONE'} end
redis.call('LPUSH', 'tensor-cmd:' .. other, raw)
return {'OK'}
