/** What an insert holds on its table, and what is stronger and may insert too. */
const writingModes = `'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * The virtual numbers of the transactions that may be inserting into tables, a query.
 *
 * Who inserts holds a lock on the table from before a number is drawn from its sequence until the transaction ends. So once a
 * number has been seen, whoever drew a lower one holds that lock, or has ended. When all who held it then have ended, every row up
 * to that number is visible that ever will be. The number and the locks may be read by one statement: pg_locks is read after the
 * statement's snapshot was taken, and that order is what the argument needs.
 *
 * The lock, not the oldest transaction's number: a transaction has none yet between drawing its row's number and
 * writing the row, and one that began long ago and has not touched the tables need not be waited for.
 *
 * A standby does not know the primary's locks.
 *
 * @param tables their oids: expressions, or a query
 */
export const tableWriters = (tables: string): string => `select virtualtransaction from pg_locks
  where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
    and relation in (${tables}) and mode in (${writingModes})`
