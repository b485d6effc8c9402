-- All is said: what this agent has not said is swept, of this epoch and of older ones.
if strange() then return {'REFILL'} end
local of, lost, fill = 'tensor-of:' .. NODE, 'tensor-lost:' .. NODE, 'tensor-fill:' .. NODE
for _, set in ipairs({of, lost}) do
	for _, name in ipairs(redis.call('SDIFF', set, fill)) do
		if kind(key(name), 'hash') and redis.call('HGET', key(name), 'node') == NODE then
			redis.call('DEL', key(name), holders(name))
		end
	end
end
redis.call('DEL', of, lost)
if redis.call('EXISTS', fill) == 1 then redis.call('RENAME', fill, of) end
return {'OK'}
