-- All is said: what this agent has not said is swept, of this epoch and of older ones.
if strange() then return {'REFILL'} end
local of, lost, fill = 'tensor-of:' .. NODE, 'tensor-lost:' .. NODE, 'tensor-fill:' .. NODE
local copies, copied = 'tensor-copies:' .. NODE, 'tensor-copied:' .. NODE
for _, set in ipairs({of, lost}) do
	for _, name in ipairs(redis.call('SDIFF', set, fill)) do
		local have = kind(key(name), 'hash') and kind(replicas(name), 'hash')
			and redis.call('HGET', key(name), 'node') == NODE and read(name)
		-- Of this epoch: it was deleted while nobody could be told.
		if have and (have.epoch == EPOCH or not promote(name, have)) then forget(name, NODE) end
	end
end
for _, name in ipairs(redis.call('SDIFF', copies, copied)) do
	if kind(key(name), 'hash') and kind(replicas(name), 'hash') then unreplicate(name, NODE) end
end
redis.call('DEL', of, lost, copies)
if redis.call('EXISTS', fill) == 1 then redis.call('RENAME', fill, of) end
if redis.call('EXISTS', copied) == 1 then redis.call('RENAME', copied, copies) end
redis.call('HSET', 'node:' .. NODE, 'of', redis.call('SCARD', of), 'copies', redis.call('SCARD', copies))
return {'OK'}
