ALTER TYPE order_state ADD VALUE IF NOT EXISTS 'lost' AFTER 'sent';
