import type { ReadOnlyCause } from '../ledger/operator/readServer.ts'

/** A database that cannot be written, by the half of ours that lives there. */
export interface ReadOnlyDatabase {
  of: 'ledger' | 'outbox'
  cause: ReadOnlyCause
}

const consequences: Record<ReadOnlyDatabase['of'], string> = {
  ledger: 'the daemons send nothing until they can write to it',
  outbox: 'the daemons take no row and report no outcome until they can write to it',
}

const remedies: Record<ReadOnlyCause, (variable: string) => string> = {
  standby: (variable) => `it is a standby: ${variable} must lead to the primary`,
  setting: (variable) =>
    `default_transaction_read_only is on for us: somebody has set it by hand, or a provider because the disk is full; look at the disk, and at \`show default_transaction_read_only\` where ${variable} leads`,
}

/** What that means, and where to look. Begins with a small letter. */
export function readOnlyMessage({ of, cause }: ReadOnlyDatabase): string {
  const variable = of === 'ledger' ? 'STATE_DATABASE_URL (else DATABASE_URL)' : 'DATABASE_URL'
  return `the ${of}’s database is read-only, so ${consequences[of]}; ${remedies[cause](variable)}`
}
