-- A doctor goes home if another one stays, and comes back later.
\set doctor random(1, 2)
BEGIN;
SELECT count(*) AS present FROM doctors WHERE on_call \gset
\if :present > 1
UPDATE doctors SET on_call = false WHERE id = :doctor;
\endif
COMMIT;
BEGIN;
UPDATE doctors SET on_call = true WHERE id = :doctor;
COMMIT;
