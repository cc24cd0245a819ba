import { describeDifferences, isDigestOfFile, readSettings, type Settings } from '../ledger/settings.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { readFileSettings, rowSecurityName, searchPathName } from '../outbox/digestFiles.ts'
import type { Database } from '../postgres/database.ts'
import { type Databases, withOutbox } from './databases.ts'

export const daemonsFilesAdvice =
  'Run the command where a daemon runs, with its DATABASE_URL, or set MAPPINGS_DIR to a folder with the daemons’ files.'

/** The mapping files or outbox.yaml of this host, or what the role sees, are not those of the daemons. */
export class FilesDiffer extends Error {
  override name = 'FilesDiffer'
  constructor(differences: string, mappingsDir: string) {
    super(
      `the files in ${mappingsDir} or the role of DATABASE_URL are not those that the daemons use: ${differences}. No further record is changed. ${daemonsFilesAdvice} If the files here are newer, restart the daemons with them first. After that or a restore, wait until \`outboxd status\` no longer says that a daemon has other files`,
    )
  }
}

/**
 * Loads the mapping files for a change that maps records.
 * @throws FilesInvalid, or FilesDiffer if the ledger has the digests of other files
 */
export async function loadLedgerMappings(databases: Databases): Promise<Mappings> {
  const mappings = loadMappings(databases.config.mappingsDir)
  await assertMappingsAreLedgers(databases, mappings)
  return mappings
}

/**
 * Call this again in the transaction that changes records, because the daemons may have got other files meanwhile.
 * @param db a transaction in which the settings cannot change
 * @throws FilesDiffer
 */
export async function assertMappingsAreLedgers(
  databases: Databases,
  mappings: Mappings,
  db: Database = databases.ledger,
): Promise<void> {
  const own = await withOutbox(databases, ({ pool, described }) => readFileSettings(pool, described, mappings))
  const ofRole = [searchPathName, rowSecurityName]
  const differences = await findDifferences(db, own, (name) => isDigestOfFile(name) || ofRole.includes(name))
  if (differences !== '') throw new FilesDiffer(differences, databases.config.mappingsDir)
}

/** For a change that asks which rows wait. @throws FilesInvalid or FilesDiffer */
export async function assertOutboxFileIsLedgers(databases: Databases, db: Database = databases.ledger): Promise<void> {
  const differences = await findOutboxFileDifferences(databases, db)
  if (differences !== '') throw new FilesDiffer(differences, databases.config.mappingsDir)
}

/** Says in what outbox.yaml differs from that of the daemons; '' if in nothing. @throws FilesInvalid */
export async function findOutboxFileDifferences(
  databases: Databases,
  db: Database = databases.ledger,
): Promise<string> {
  const own = await withOutbox(databases, ({ pool, described }) => readFileSettings(pool, described, new Map()))
  return findDifferences(db, own, (name) => name in own || name === rowSecurityName)
}

async function findDifferences(db: Database, own: Settings, isCompared: (name: string) => boolean): Promise<string> {
  const settings = await readSettings(db)
  const daemons = Object.entries(settings ?? {}).filter(([name]) => isCompared(name))
  // Until a daemon has run, no record was mapped by other files.
  return daemons.length === 0 ? '' : describeDifferences(own, Object.fromEntries(daemons))
}
