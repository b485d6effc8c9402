-- A node that lapsed: its commands go to the others, replicas become the first of its tensors, what nobody
-- else has is lost; how many, behind the word. ARGV: that node
local other, most, lost = ARGV[4], 500, 0
if strange() then return {'REFILL'} end
if alive(other) then return {'OK', 0} end
for _, list in ipairs({'tensor-taken:' .. other, 'tensor-cmd:' .. other}) do
	for _ = 1, most do
		if not redis.call('LMOVE', list, 'tensor:cmd', 'RIGHT', 'RIGHT') then break end
	end
end
local of, copies = 'tensor-of:' .. other, 'tensor-copies:' .. other
for _, name in ipairs(redis.call('SRANDMEMBER', of, most)) do
	local have = kind(key(name), 'hash') and read(name)
	if have and have.node == other and have.state ~= 'lost' and not promote(name, have) then
		lose(name, 'the agent ' .. other .. ' has not renewed node:' .. other .. ' for '
			.. ALIVE_MS / 1000 .. ' s')
		lost = lost + 1
	end
	redis.call('SMOVE', of, 'tensor-lost:' .. other, name)
end
for _, name in ipairs(redis.call('SRANDMEMBER', copies, most)) do
	if kind(key(name), 'hash') and kind(replicas(name), 'hash') then unreplicate(name, other) end
	redis.call('SREM', copies, name)
end
redis.call('EXPIRE', 'tensor-lost:' .. other, LOST_S)
if redis.call('EXISTS', of, copies, 'tensor-taken:' .. other, 'tensor-cmd:' .. other) > 0 then return {'MORE', lost} end
redis.call('SREM', 'tensor-nodes', other)
return {'OK', lost}
