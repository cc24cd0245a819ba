/** Replaces a text of the source with a different one. */
export interface Patch {
  file: string
  from: string
  to: string
}

export interface Mutation {
  /** What the mutation breaks, in words. */
  breaks: string
  patches: Patch[]
  /** How the sandbox must treat repeated idempotency keys so that the mutation shows. */
  idempotency: 'ignore' | 'e002'
  /** `many` if only daemons that go on after a stop show the mutation: then more are stopped and fewer killed. */
  stops?: 'many'
}

/** Mutations that break the guarantee in a copy of the source. The command above each mutation finds it. */
export const mutations = {
  // npm run crash -- --mutation resend-after-timeout --kills 60 --seed 5
  'resend-after-timeout': {
    breaks: 'under policy hold, a record is sent again after an attempt that may have arrived',
    patches: [
      {
        file: 'src/daemon/submit/decideSubmit.ts',
        from: `return { kind: 'uncertain', code: null, reason, breach: null }`,
        to: `return { kind: 'resend', afterMs: 100, reason }`,
      },
    ],
    idempotency: 'ignore',
  },
  // npm run crash -- --mutation e002-new-id --kills 60 --seed 6
  'e002-new-id': {
    breaks: 'E002 after an attempt in doubt is answered with a new idempotency key',
    patches: [
      {
        file: 'src/daemon/submit/decideSubmit.ts',
        from: 'if (earlierInDoubt || serverErrors > 0 || isTakenByUs)',
        to: 'if (false && isTakenByUs)',
      },
    ],
    idempotency: 'e002',
  },
  // npm run crash -- --mutation forgetful-prune --kills 40 --seed 8
  'forgetful-prune': {
    breaks: 'what is pruned is forgotten, so that a row that says again that it waits is sent again',
    patches: [
      {
        file: 'src/ledger/retention.ts',
        from: 'from gone s where outbox = outboxd.current_outbox()',
        to: 'from gone s where false',
      },
    ],
    idempotency: 'ignore',
  },
  // npm run crash -- --mutation forgotten-change --kills 15 --daemons 3 --seed 5
  'forgotten-change': {
    breaks: 'a document counts as unchanged although its content is different, so that its last version is never sent',
    patches: [
      {
        file: 'src/ledger/documents.ts',
        from: 'if (lastRecord === null || digest === null || lastRecord.digest !== digest) return null',
        to: 'if (lastRecord === null) return null',
      },
    ],
    idempotency: 'ignore',
  },
  // npm run failover -- --mode async --mutation no-history --times 4 --seed 3
  'no-history': {
    breaks: 'nobody compares the history of the ledger with its server: npm run failover -- --mode async notices it',
    patches: [
      {
        file: 'src/ledger/history/judgeDataLoss.ts',
        from: `if (reading.isFound) return { kind: 'waits' }`,
        to: `if (!reading.isFound) return { kind: 'stands' }\n  if (reading.isFound) return { kind: 'waits' }`,
      },
    ],
    idempotency: 'ignore',
  },
  // npm run crash -- --mutation no-fence --kills 40 --seed 7 --daemons 8
  'no-fence': {
    breaks: 'a worker that was thought dead writes its outcome over what was decided since',
    patches: [
      {
        file: 'src/ledger/outcomes.ts',
        from: `where s.id = t.id and s.state = t."fromState" and s.attempt = t.attempt
         and s.claim_id is not distinct from t."claimId" and s.job_id is not distinct from t."jobId"`,
        to: 'where s.id = t.id',
      },
    ],
    idempotency: 'ignore',
    stops: 'many',
  },
} as const satisfies Record<string, Mutation>

export type MutationName = keyof typeof mutations

export const isMutation = (name: string): name is MutationName => name in mutations
