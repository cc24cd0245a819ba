import type { Database } from '../postgres/database.ts'
import { isAlive } from './instanceLife.ts'

/** An instance that lives, and what it has said of the last reload that it was asked for. */
export interface InstanceReload {
  id: string
  host: string
  version: string
  hasAnswered: boolean
  /** What keeps its files from being used; null where nothing does, or it has not answered. */
  problem: string | null
}

/** What an instance says where it could not try the outbox table before it took another outbox.yaml into force. */
export const tableUntried = 'whether its table is as outbox.yaml says is not known yet'

const columns = `id, host, version, reload_answered >= reload_asked as "hasAnswered", reload_problem as problem`

/** Asks all that live to read their files again. @returns them */
export async function askReload(db: Database): Promise<InstanceReload[]> {
  const { rows } = await db.query<InstanceReload>(
    `update outboxd.instance i set reload_asked = reload_asked + 1, reload_problem = null
     where ${isAlive('i')} returning ${columns}`,
  )
  return rows
}

/** The instances that live. */
export async function readReloads(db: Database): Promise<InstanceReload[]> {
  const { rows } = await db.query<InstanceReload>(
    `select ${columns} from outboxd.instance i where ${isAlive('i')} order by host, id`,
  )
  return rows
}

/** Says that an instance has read its files, and what was wrong with them. */
export async function answerReload(
  db: Database,
  instanceId: string,
  { asked, problem }: { asked: number; problem: string | null },
): Promise<void> {
  await db.query('update outboxd.instance set reload_answered = $2, reload_problem = $3 where id = $1', [
    instanceId,
    asked,
    problem,
  ])
}
