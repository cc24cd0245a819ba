import type { BenchDatabase } from './postgres.ts'

/**
 * The schedules that the learned one is compared with, each as SQL: when to poll the transaction of submission `s` next,
 * which was polled last `at`. `unit` stands for one second of uncompressed time.
 */
const schedules = {
  'every 5 s': 'at + 5 * unit',
  'every 10 s': 'at + 10 * unit',
  'every 30 s': 'at + 30 * unit',
  'doubling 1 to 60 s': 'at + least(60, 2 ^ s.polls) * unit',
  'every 60 s': 'at + 60 * unit',
  oracle: '(select done_at from sandbox.transactions where id = s.transaction_id)',
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
 * Replaces the daemon's schedule by a trigger in the benchmark's database, which changes the time of each poll that the
 * daemon plans or brings forward. So the shipped daemon is compared with itself and needs no switch for it.
 */
export async function replaceSchedule({ pool }: BenchDatabase, name: ScheduleName, unitMs: number): Promise<void> {
  const nextPollAt = schedules[name].replaceAll('unit', `interval '${unitMs} ms'`)
  await pool.query(`
    create function public.bench_plan() returns trigger language plpgsql as $$
    declare
      s outboxd.submission;
      at timestamptz;
      planned timestamptz;
    begin
      select * into s from outboxd.submission where id = new.id;
      at := s.accepted_at + coalesce(s.not_done_ms, 0) * interval '1 ms';
      planned := ${nextPollAt};
      if planned is not null then
        new.priority := new.priority - floor(extract(epoch from planned - new.start_after))::int;
        new.start_after := planned;
      end if;
      return new;
    end $$;
    create trigger bench_plan before insert on outboxd_jobs.job_common for each row execute function public.bench_plan();
  `)
}
