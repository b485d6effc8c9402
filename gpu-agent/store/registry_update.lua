-- What a tensor has become: sealed, touched, lost. ARGV: name, '', fields…
local name = ARGV[4]
if strange() then return {'REFILL'} end
local have, edited = read(name)
if spoilt(name, have, edited) then return {'EDITED'} end
if not have or have.node ~= NODE or have.epoch ~= EPOCH then return {'MISSING'} end
write(name, 6)
return answer('OK', name)
