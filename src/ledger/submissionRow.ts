import { z } from 'zod'
import type { Submission } from '../model.ts'
import { pauseReasons, states } from '../model.ts'
import { resourceNames } from '../resources.ts'
import { metPause, refusedPolls } from './passages.ts'
import { parsers, remembered, selected } from './submissionColumns.ts'

const fromTable = [...remembered, 'polledRarely'] as const

/** The columns of a submission as the stages see it, from a table or CTE that is called `s`. */
export const submissionColumns = `
  s.id, s.outbox_id as "outboxId", s.type, s.key, s.resource, s.body, s.tracked, s.sends_own_id as "sendsOwnId",
  extract(epoch from s.recorded_at)::float8 * 1000 as "recordedMs", s.state, s.attempt, s.claim_id as "claimId",
  ${selected('s', fromTable)}, ${metPause('s')} as met, ${refusedPolls('s')} as "refusedPolls",
  s.id_by_person as "idByPerson", s.probing, s.job_id as "jobId",
  coalesce(extract(epoch from clock_timestamp() - coalesce(s.accepted_at, s.sent_at)), 0)::float8 * 1000 as "ageMs",
  extract(epoch from clock_timestamp() - s.unknown_since)::float8 * 1000 as "unknownForMs"`

const row: z.ZodType<Submission> = z.object({
  ...parsers(fromTable),
  id: z.string(),
  outboxId: z.string(),
  type: z.string(),
  key: z.string().nullable(),
  resource: z.enum(resourceNames),
  body: z.string(),
  tracked: z.boolean(),
  sendsOwnId: z.boolean(),
  recordedMs: z.number(),
  state: z.enum(states),
  attempt: z.number(),
  claimId: z.string().nullable(),
  met: z
    .object({
      reason: z.enum(pauseReasons),
      times: z.number(),
      othersThrough: z.boolean(),
      othersRecovered: z.boolean(),
    })
    .nullable(),
  idByPerson: z.boolean(),
  probing: z.boolean(),
  jobId: z.string().nullable(),
  ageMs: z.number(),
  refusedPolls: z.object({ times: z.number(), othersThrough: z.boolean() }),
  unknownForMs: z.number().nullable(),
})

/** Parses rows that were selected with `submissionColumns`. */
export const parseSubmissions = (rows: unknown[]): Submission[] => rows.map((each) => row.parse(each))
