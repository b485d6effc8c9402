-- ARGV: name, holder
local name, holder = ARGV[4], ARGV[5]
if strange() then return {'REFILL'} end
local have, edited = read(name)
if spoilt(name, have, edited) then return {'EDITED'} end
if have and have.node ~= NODE and has_replica(name) then
	holder = holder_at(NODE, holder)
elseif not have or have.node ~= NODE or have.epoch ~= EPOCH then
	return {'MISSING'}
end
redis.call('SREM', holders(name), holder)
count(name)
return {'OK'}
