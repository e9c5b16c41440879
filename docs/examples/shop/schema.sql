-- A small shop with three mistakes, for docs/tutorial-application.md.
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, stock int NOT NULL);
CREATE TABLE coupons (code text PRIMARY KEY, uses_left int NOT NULL);
CREATE TABLE doctors (id int PRIMARY KEY, name text NOT NULL, on_call boolean NOT NULL);
INSERT INTO products VALUES (1, 'lamp', 100000), (2, 'chair', 100000);
INSERT INTO coupons VALUES ('SPRING', 100000), ('SUMMER', 100000);
INSERT INTO doctors VALUES (1, 'Alice', true), (2, 'Bob', true);
