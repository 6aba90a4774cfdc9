-- Version 4: a node says how far its machine's clock is off.
ALTER TABLE redrive.nodes ADD COLUMN clock_ahead_ms bigint NOT NULL DEFAULT 0;
