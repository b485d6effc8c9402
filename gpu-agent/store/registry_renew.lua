-- Lives on for ALIVE_MS. ARGV: what it says, in pairs. Answers with the nodes that do not.
if strange() then return {'REFILL'} end
for i = 4, #ARGV, 2 do redis.call('HSET', 'node:' .. NODE, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', 'node:' .. NODE, ALIVE_MS)
local lapsed = {}
for _, node in ipairs(redis.call('SMEMBERS', 'tensor-nodes')) do
	if not alive(node) and #lapsed < 16 then lapsed[#lapsed + 1] = node end
end
return {'OK', lapsed}
