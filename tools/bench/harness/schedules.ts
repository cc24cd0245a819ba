import type { BenchDatabase } from './postgres.ts'

/**
 * The schedules that the learned one is compared with, each as SQL: when to ask next, from the row `new` of a submission
 * whose poll is being planned. `unit` stands for one second of uncompressed time.
 */
const schedules = {
  'every 5 s': `clock_timestamp() + 5 * unit`,
  'every 10 s': `clock_timestamp() + 10 * unit`,
  'every 30 s': `clock_timestamp() + 30 * unit`,
  'doubling 1 to 60 s': `clock_timestamp() + least(60, 2 ^ new.polls) * unit`,
  'every 60 s': `clock_timestamp() + 60 * unit`,
  oracle: `(select done_at from sandbox.transactions where id = new.transaction_id)`,
} as const

export type ScheduleName = keyof typeof schedules

/** Processing times in the sandbox's notation, in seconds of time compressed ten times. */
export const processingTimes = {
  'constant 30 s ± 10 %': 'constant:3:0.1',
  'log-normal 20 s, σ 0.6': 'lognormal:2:0.6',
  'humps 2-5 s, 120-300 s': 'humps:0.8:0.2-0.5:12-30',
  'exponential 20 s': 'exponential:2',
} as const

/** One schedule with one distribution. */
export interface ChosenRun {
  distribution: string
  processingTime: string
  schedule: 'learned' | ScheduleName
}

/** Pairs schedules with distributions whose names contain one of the words, which commas separate. */
export function chooseRuns({ only, times }: { only: string; times: string }): ChosenRun[] {
  const isChosen = (name: string, words: string) => words.split(',').some((word) => name.includes(word))
  const all = ['learned', ...(Object.keys(schedules) as ScheduleName[])] as const
  return Object.entries(processingTimes)
    .filter(([distribution]) => isChosen(distribution, times))
    .flatMap(([distribution, processingTime]) =>
      all
        .filter((schedule) => isChosen(schedule, only))
        .map((schedule) => ({ distribution, processingTime, schedule })),
    )
}

/**
 * Replaces the daemon's schedule by triggers in the benchmark's database, which change the time of each poll that the
 * daemon plans. So the shipped daemon is compared with itself and needs no switch for it.
 */
export async function replaceSchedule({ pool }: BenchDatabase, name: ScheduleName, unitMs: number): Promise<void> {
  const nextPollAt = schedules[name].replaceAll('unit', `interval '${unitMs} ms'`)
  await pool.query(`
    create function public.bench_plan() returns trigger language plpgsql as $$
    begin
      new.poll_at := coalesce(${nextPollAt}, new.poll_at);
      return new;
    end $$;
    create trigger bench_plan before update on outboxd.submission for each row
      when (new.job_id is not null and new.job_id is distinct from old.job_id) execute function public.bench_plan();

    -- The daemon brings polls forward when requests are free: that, too, belongs to its own schedule.
    create function public.bench_keep() returns trigger language plpgsql as $$
    begin
      return null;
    end $$;
    create trigger bench_keep before update on outboxd.submission for each row
      when (new.job_id = old.job_id and new.poll_at < old.poll_at) execute function public.bench_keep();

    create function public.bench_enqueue() returns trigger language plpgsql as $$
    begin
      new.start_after := coalesce(
        (select poll_at from outboxd.submission where id = (new.data ->> 'submissionId')::uuid and job_id = new.id),
        new.start_after);
      return new;
    end $$;
    create trigger bench_enqueue before insert on outboxd_jobs.job_common for each row execute function public.bench_enqueue();
  `)
}
