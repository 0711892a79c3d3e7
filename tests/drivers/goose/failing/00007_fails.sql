-- +goose Up
ALTER TABLE account ADD COLUMN gone text DEFAULT 'x';
UPDATE account SET gone = mail;
UPDATE orders SET total = -total;
