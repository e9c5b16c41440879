-- Takes a coupon, if it was not taken too often.
\set number random(1, 2)
BEGIN;
\if :number = 1
SELECT uses_left FROM coupons WHERE code = 'SPRING' /*route='/checkout'*/ \gset
UPDATE coupons SET uses_left = :uses_left - 1 WHERE code = 'SPRING' /*route='/checkout'*/;
\else
SELECT uses_left FROM coupons WHERE code = 'SUMMER' /*route='/checkout'*/ \gset
UPDATE coupons SET uses_left = :uses_left - 1 WHERE code = 'SUMMER' /*route='/checkout'*/;
\endif
COMMIT;
