-- Version 5: what operators set for lanes.
--
-- `controls` is JSON as text: jsonb rejects the character U+0000, which a reason may contain.
CREATE TABLE redrive.lane_controls (
    tenant     text COLLATE "C" NOT NULL,
    dependency text COLLATE "C" NOT NULL,
    controls   text NOT NULL,
    PRIMARY KEY (tenant, dependency)
);
