-- Sells one piece: looks how many there are, and writes down one less.
\set product random(1, 2)
BEGIN;
SELECT stock FROM products WHERE id = :product \gset
\if :stock > 0
UPDATE products SET stock = :stock - 1 WHERE id = :product;
\endif
COMMIT;
