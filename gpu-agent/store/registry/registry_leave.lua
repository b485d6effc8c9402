-- An agent goes in good order: its entry goes with it, unless that is another's by now.
if strange() then return {'REFILL'} end
redis.call('DEL', 'node:' .. NODE, 'tensor-fill:' .. NODE)
if redis.call('EXISTS', 'tensor-of:' .. NODE) == 0 then redis.call('SREM', 'tensor-nodes', NODE) end
return {'OK'}
