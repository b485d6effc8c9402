-- Lives on for ALIVE_MS. ARGV: what it says, in pairs. Answers with the nodes that do not, the words for this one, and
-- in how many ms the next one lapses that does not renew.
if strange() then return {'REFILL'} end
for i = 4, #ARGV, 2 do redis.call('HSET', 'node:' .. NODE, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', 'node:' .. NODE, ALIVE_MS)
local lapsed, soonest, most = {}, ALIVE_MS, 500
for _, node in ipairs(redis.call('SMEMBERS', 'tensor-nodes')) do
	local left = redis.call('PTTL', 'node:' .. node)
	if left < 0 and #lapsed < 16 then lapsed[#lapsed + 1] = node end
	if left >= 0 and left < soonest then soonest = left end
end
local words = redis.call('LRANGE', 'tensor-words:' .. NODE, 0, most - 1)
redis.call('LTRIM', 'tensor-words:' .. NODE, most, -1)
return {'OK', lapsed, words, tostring(soonest)}
