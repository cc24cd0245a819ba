import type pg from 'pg'
import type { ClientSettings, LiveSettings, SettingsPatch } from './sandboxSettings.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** Key of the changes for all clients. */
const allClients = ''

export type SettingsStore = Awaited<ReturnType<typeof openSettingsStore>>

/**
 * Later settings win: the settings of the start, changes at /_sandbox/settings, the client's own settings of the start,
 * changes at /_sandbox/settings?client=. Changes are in the database, so a restart keeps them.
 */
export async function openSettingsStore(
  pool: pg.Pool,
  settingsAtStart: LiveSettings,
  clients: readonly ClientSettings[],
) {
  const ownSettings = new Map(clients.map(({ id, secret: _secret, ...own }) => [id, own as SettingsPatch]))
  const merged = new Map<string | null, LiveSettings>()
  let changes = await readOrCreateState<Record<string, SettingsPatch>>(pool, 'client_settings', {})
  const changesOf = (client: string | null): SettingsPatch => changes[client ?? allClients] ?? {}
  const save = async (more: Record<string, SettingsPatch>): Promise<void> => {
    await writeState(pool, 'client_settings', more)
    changes = more
    merged.clear()
  }
  /** Returns the same object until a setting changes. */
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
    change: (client: string | null, more: SettingsPatch) =>
      save({ ...changes, [client ?? allClients]: { ...changesOf(client), ...more } }),
    resetChanges: (client: string | null) => save(client === null ? {} : { ...changes, [client]: {} }),
    longestWindowSeconds: () =>
      Math.max(...[null, ...ownSettings.keys()].map((client) => of(client).rateLimitWindowSeconds)),
    changedNames: () =>
      Object.entries(changes).flatMap(([client, patch]) =>
        Object.keys(patch).map((name) => (client === allClients ? name : `${name} of ${client}`)),
      ),
  }
}
