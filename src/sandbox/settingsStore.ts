import type pg from 'pg'
import type { ClientSettings, LiveSettings, SettingsPatch } from './sandboxSettings.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** Key of the changes for all clients. */
const allClients = ''

export interface SettingsStore {
  /** Returns the same object until a setting changes. @param client null for the settings of all clients */
  of(client: string | null): LiveSettings
  changed(client: string | null): SettingsPatch
  change(client: string | null, more: SettingsPatch): Promise<void>
  resetChanges(client: string | null): Promise<void>
  longestWindowSeconds(): number
  changedNames(): string[]
}

/**
 * Later settings win: the settings of the start, changes at /_sandbox/settings, the client's own settings of the start,
 * changes at /_sandbox/settings?client=. Changes are in the database, so a restart keeps them.
 */
export async function openSettingsStore(
  pool: pg.Pool,
  settingsAtStart: LiveSettings,
  clients: readonly ClientSettings[],
): Promise<SettingsStore> {
  const ownSettings = new Map(clients.map(({ id, secret: _secret, ...own }) => [id, own as SettingsPatch]))
  const merged = new Map<string | null, LiveSettings>()
  let changes = await readOrCreateState<Record<string, SettingsPatch>>(pool, 'client_settings', {})
  const changesOf = (client: string | null): SettingsPatch => changes[client ?? allClients] ?? {}
  const save = async (more: Record<string, SettingsPatch>): Promise<void> => {
    await writeState(pool, 'client_settings', more)
    changes = more
    merged.clear()
  }
  const of = (client: string | null): LiveSettings => {
    const known = merged.get(client)
    if (known) return known
    const ofClient = client === null ? {} : { ...ownSettings.get(client), ...changesOf(client) }
    const current = { ...settingsAtStart, ...changesOf(null), ...ofClient }
    merged.set(client, current)
    return current
  }
  return {
    of,
    changed: changesOf,
    change: (client, more) => save({ ...changes, [client ?? allClients]: { ...changesOf(client), ...more } }),
    resetChanges: (client) => save(client === null ? {} : { ...changes, [client]: {} }),
    longestWindowSeconds: () =>
      Math.max(...[null, ...ownSettings.keys()].map((client) => of(client).rateLimitWindowSeconds)),
    changedNames: () =>
      Object.entries(changes).flatMap(([client, patch]) =>
        Object.keys(patch).map((name) => (client === allClients ? name : `${name} of ${client}`)),
      ),
  }
}
