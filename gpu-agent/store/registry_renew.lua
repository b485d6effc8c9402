-- Lives on for ALIVE_MS. Answers with the nodes that do not.
if strange() then return {'REFILL'} end
redis.call('PEXPIRE', 'node:' .. NODE, ALIVE_MS)
local lapsed = {}
for _, node in ipairs(redis.call('SMEMBERS', 'tensor-nodes')) do
	if not alive(node) and #lapsed < 16 then lapsed[#lapsed + 1] = node end
end
return {'OK', lapsed}
