ALTER TABLE account ADD COLUMN gone text DEFAULT 'x';
UPDATE account SET gone = mail;
UPDATE account SET balance = -5000;
