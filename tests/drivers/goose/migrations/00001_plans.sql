-- +goose Up
CREATE TABLE plan (
    name text PRIMARY KEY,
    price numeric(8, 2) NOT NULL DEFAULT 0 CHECK (price >= 0)
);
INSERT INTO plan (name, price) VALUES ('free', 0), ('größer', 49.5);
COMMENT ON COLUMN plan.price IS 'a month';

-- +goose Down
DROP TABLE plan;
