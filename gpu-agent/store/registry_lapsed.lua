-- A node that lapsed: its commands go to the others, its tensors are lost. ARGV: that node
local other, most = ARGV[4], 500
if strange() then return {'REFILL'} end
if alive(other) then return {'OK'} end
for _, list in ipairs({'tensor-taken:' .. other, 'tensor-cmd:' .. other}) do
	for _ = 1, most do
		if not redis.call('LMOVE', list, 'tensor:cmd', 'RIGHT', 'RIGHT') then break end
	end
end
local of = 'tensor-of:' .. other
for _, name in ipairs(redis.call('SRANDMEMBER', of, most)) do
	local have = kind(key(name), 'hash') and read(name)
	if have and have.node == other and have.state ~= 'lost' then
		local now = redis.call('TIME')
		redis.call('HSET', key(name), 'state', 'lost', 'mtime', now[1] .. string.format('%06d000', now[2]),
			'error', 'the agent ' .. other .. ' has not renewed node:' .. other .. ' for '
			.. ALIVE_MS / 1000 .. ' s')
		redis.call('DEL', holders(name))
		write(name, #ARGV + 1)
		redis.call('EXPIRE', key(name), LOST_S)
	end
	redis.call('SMOVE', of, 'tensor-lost:' .. other, name)
end
redis.call('EXPIRE', 'tensor-lost:' .. other, LOST_S)
if redis.call('EXISTS', of, 'tensor-taken:' .. other, 'tensor-cmd:' .. other) > 0 then return {'MORE'} end
redis.call('SREM', 'tensor-nodes', other)
return {'OK'}
