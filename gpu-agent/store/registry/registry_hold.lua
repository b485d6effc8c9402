-- More holders than one put can say. ARGV: name, holders…
local name = ARGV[4]
if strange() then return {'REFILL'} end
local copy = redis.call('SISMEMBER', 'tensor-copied:' .. NODE, name) == 1
if not copy and redis.call('SISMEMBER', 'tensor-fill:' .. NODE, name) == 0 then return {'MISSING'} end
for i = 5, #ARGV do redis.call('SADD', holders(name), copy and holder_at(NODE, ARGV[i]) or ARGV[i]) end
count(name)
return {'OK'}
