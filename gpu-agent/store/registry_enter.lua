-- An agent says that it is there, and begins to fill. ARGV: address, GPUs, devices, memory; then
-- what else it says, in pairs
local mine, old = 'node:' .. NODE, redis.pcall('HGET', 'node:' .. NODE, 'epoch')
if type(old) == 'string' and (#old > #EPOCH or (#old == #EPOCH and old > EPOCH)) then
	return {'NEWER', {}}
end
redis.call('DEL', mine, 'tensor-fill:' .. NODE, 'tensor-copied:' .. NODE, 'tensor-words:' .. NODE)
redis.call('HSET', mine, 'token', TOKEN, 'epoch', EPOCH, 'address', ARGV[4], 'gpus', ARGV[5],
	'devices', ARGV[6], 'memory', ARGV[7])
for i = 8, #ARGV, 2 do redis.call('HSET', mine, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', mine, ALIVE_MS)
redis.call('SADD', 'tensor-nodes', NODE)
return {'OK', {}}
