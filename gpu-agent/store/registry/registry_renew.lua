-- How many hashes are read at once: Redis answers nobody meanwhile.
local READ_MOST = 512

-- What this agent has said is not as it said it: somebody's hand was in between. Whether each is there is looked at
-- every time, what is in it in turns.
local function damaged()
	local of, copies, mine = 'tensor-of:' .. NODE, 'tensor-copies:' .. NODE, 'node:' .. NODE
	if not kind(of, 'set') or not kind(copies, 'set') then return true end
	for set, field in pairs({[of] = 'of', [copies] = 'copies'}) do
		local said = redis.call('HGET', mine, field)
		if said and tonumber(said) ~= redis.call('SCARD', set) then return true end
	end
	for _, set in ipairs({of, copies}) do
		local names = redis.call('SMEMBERS', set)
		for first = 1, #names, 1000 do
			local keys = {}
			for i = first, math.min(first + 999, #names) do keys[#keys + 1] = key(names[i]) end
			if redis.call('EXISTS', unpack(keys)) < #keys then return true end
		end
		if set == copies then
			for _, name in ipairs(names) do
				if not kind(replicas(name), 'hash') or not has_replica(name) then return true end
			end
		end
	end
	local turn = redis.call('SSCAN', of, redis.call('HGET', mine, 'read') or '0', 'COUNT', READ_MOST)
	-- A key that has lapsed would not lapse again.
	if redis.call('EXISTS', mine) == 1 then redis.call('HSET', mine, 'read', turn[1]) end
	for _, name in ipairs(turn[2]) do
		local have, edited = read(name)
		if not have or edited then return true end
	end
	return false
end

-- Lives on for ALIVE_MS. ARGV: what it says, in pairs. Answers with the nodes that do not, the words for this one, and
-- in how many ms the next one lapses that does not renew.
if strange() or damaged() then return {'REFILL'} end
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
