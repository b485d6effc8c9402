-- This agent has a copy of what another one has. ARGV: name, '', fields…
local name = ARGV[4]
if strange() then return {'REFILL'} end
local have, edited = read(name)
if spoilt(name, have, edited) then return {'EDITED'} end
have = settle(name, have)
if not replicate(name, have, fields_at(6)) then return {'MISSING'} end
return answer('OK', name)
