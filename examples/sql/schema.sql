-- The shop's own table, in the PostgreSQL database that Redrive uses: redrive serve --store postgres://…
CREATE TABLE orders (
    id text PRIMARY KEY,
    amount numeric NOT NULL,
    status text NOT NULL
);
