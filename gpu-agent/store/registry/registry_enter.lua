-- An agent says that it is there, and begins to fill. ARGV: address, GPUs, devices, memory; then
-- what else it says, in pairs
local mine, old = 'node:' .. NODE, redis.pcall('HGET', 'node:' .. NODE, 'epoch')
if type(old) == 'string' and (#old > #EPOCH or (#old == #EPOCH and old > EPOCH)) then
	return {'NEWER', {}}
end
-- A script that meets a key of another kind ends, and the agent enters anew: here such a key goes.
for _, set in ipairs({'tensor-nodes', 'tensor-of:' .. NODE, 'tensor-lost:' .. NODE, 'tensor-copies:' .. NODE}) do
	if not kind(set, 'set') then redis.call('DEL', set) end
end
for _, list in ipairs({'tensor:cmd', 'tensor-cmd:' .. NODE, 'tensor-taken:' .. NODE}) do
	if not kind(list, 'list') then redis.call('DEL', list) end
end
redis.call('DEL', mine, 'tensor-fill:' .. NODE, 'tensor-copied:' .. NODE, 'tensor-words:' .. NODE)
redis.call('HSET', mine, 'token', TOKEN, 'epoch', EPOCH, 'address', ARGV[4], 'gpus', ARGV[5],
	'devices', ARGV[6], 'memory', ARGV[7])
for i = 8, #ARGV, 2 do redis.call('HSET', mine, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', mine, ALIVE_MS)
redis.call('SADD', 'tensor-nodes', NODE)
return {'OK', {}}
