CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('redrive_outbox_' || TG_RELID, '');
    RETURN NULL;
END
$$;
CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
