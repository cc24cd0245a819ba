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
}

/** Mutations that break the guarantee in a copy of the source. tools/README.md says which command notices each. */
export const mutations = {
  'resend-after-timeout': {
    breaks: 'under policy hold, a record is sent again after an attempt that may have arrived',
    patches: [
      {
        file: 'src/daemon/decideSubmit.ts',
        from: `return { kind: 'uncertain', code: null, reason, breach: null }`,
        to: `return { kind: 'resend', afterMs: 100, reason }`,
      },
    ],
    idempotency: 'ignore',
  },
  'e002-new-id': {
    breaks: 'E002 after an attempt in doubt is answered with a new idempotency key',
    patches: [
      {
        file: 'src/daemon/decideSubmit.ts',
        from: 'if (inDoubt || serverErrors > 0 || isTakenByUs)',
        to: 'if (false && isTakenByUs)',
      },
    ],
    idempotency: 'e002',
  },
  'forgotten-change': {
    breaks: 'a document counts as unchanged although its content is different, so that its last version is never sent',
    patches: [
      {
        file: 'src/ledger/documents.ts',
        from: 'sent.digest === digest && ',
        to: 'sent.digest !== null && ',
      },
    ],
    idempotency: 'ignore',
  },
  'no-history': {
    breaks: 'nobody compares the history of the ledger with its server',
    patches: [
      {
        file: 'src/ledger/history/judgeHistory.ts',
        from: `if (isLost) return { kind: 'waits' }`,
        to: `if (!isLost) return { kind: 'stands' }\n  if (isLost) return { kind: 'waits' }`,
      },
    ],
    idempotency: 'ignore',
  },
  'no-fence': {
    breaks: 'a worker that was thought dead writes its outcome over what was decided since',
    patches: [
      {
        file: 'src/ledger/outcomes.ts',
        from: `where s.id = t.id and s.state = t."fromState" and s.revision = t.revision
         and s.claim_id is not distinct from t."claimId"`,
        to: 'where s.id = t.id',
      },
    ],
    idempotency: 'ignore',
  },
  'send-before-commit': {
    breaks: 'a record is sent before its claim is committed',
    patches: [
      {
        file: 'src/ledger/claims.ts',
        from: `    await using transaction = await beginTransaction(this.#on.ledger, {`,
        to: `    const transaction = await beginTransaction(this.#on.ledger, {`,
      },
      {
        file: 'src/ledger/claims.ts',
        from: `    if (!(await this.#on.history.mayClaim(transaction.db))) return null
    const taken = await work(transaction.db)
    if (taken !== null) await transaction.commit()
    return taken`,
        to: `    const taken = (await this.#on.history.mayClaim(transaction.db)) ? await work(transaction.db) : null
    void new Promise((resolve) => setTimeout(resolve, taken === null ? 0 : 100))
      .then(() => (taken === null ? undefined : transaction.commit()))
      .finally(() => transaction[Symbol.asyncDispose]())
      .catch(() => {})
    return taken`,
      },
      // Nothing looks for the claim or its requests, or writes its outcome, before its COMMIT.
      {
        file: 'src/ledger/history/history.ts',
        from: `if (this.#request === null || BigInt(id) > BigInt(this.#request.id))`,
        to: `if (id === '')`,
      },
      {
        file: 'src/ledger/claims.ts',
        from: `if (claimed.submissions.length > 0) await this.#on.history.assertCommitIsCertain()`,
        to: ``,
      },
      {
        file: 'src/ledger/claims.ts',
        from: `where id = any($1::uuid[]) and state = 'sending' and claim_id = $2`,
        to: `where id = any($1::uuid[]) and $2::uuid is not null`,
      },
      {
        file: 'src/daemon/dispatch/dispatch.ts',
        from: `    const attempted = await working
`,
        to: `    const attempted = await working
    await new Promise((resolve) => setTimeout(resolve, 200))
`,
      },
    ],
    idempotency: 'ignore',
  },
  'no-mark': {
    breaks: 'captured rows are not marked',
    patches: [
      {
        file: 'src/outbox/claimRows.ts',
        from: `  await db.query(writing.mark, [JSON.stringify(storable)])
`,
        to: `  if (storable.length > 0) return []
`,
      },
    ],
    idempotency: 'ignore',
  },
  'mark-before-record': {
    breaks: 'rows are marked in a transaction of their own, before their records are inserted',
    patches: [
      {
        file: 'src/daemon/capture.ts',
        from: `        const records = read.length === 0 ?`,
        to: `        if (read.length > 0) {
          await markRows(session.db, rows, toMarks(read))
          await session.db.query('commit; begin')
        }
        const records = read.length === 0 ?`,
      },
    ],
    idempotency: 'ignore',
  },
  'uncounted-poll': {
    breaks: 'a poll is not counted, so that a window holds more requests than the limit',
    patches: [
      {
        file: 'src/ledger/budget.ts',
        from: `select $1, purpose, clock_timestamp() + $2 * interval '1 ms', submission_id`,
        to: `select $1, purpose, case purpose when 'poll' then now() - interval '1 d' else clock_timestamp() + $2 * interval '1 ms' end, submission_id`,
      },
    ],
    idempotency: 'ignore',
  },
  'trial-without-end': {
    breaks:
      'a trial of the breaker has no deadline, so that nobody sends after a daemon was killed in the middle of it',
    patches: [
      {
        file: 'src/ledger/breaker.ts',
        from: `trial = r.id, trial_until = r.over_at`,
        to: `trial = r.id, trial_until = 'infinity'`,
      },
    ],
    idempotency: 'ignore',
  },
  'trial-for-all': {
    breaks:
      'each daemon has a trial of its own, so that a service that is down gets as many requests as there are daemons',
    patches: [
      {
        file: 'src/ledger/breaker.ts',
        from: `until <= clock_timestamp() and (trial_until is null or trial_until <= clock_timestamp())`,
        to: `until <= clock_timestamp()`,
      },
    ],
    idempotency: 'ignore',
  },
} as const satisfies Record<string, Mutation>

export type MutationName = keyof typeof mutations

export const isMutation = (name: string): name is MutationName => name in mutations
