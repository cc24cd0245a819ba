/** What PostgreSQL and Node need of an environment: where programs, libraries and temporary files are, the language, the time zone. */
const handedOn =
  /^(PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|DYLD_FALLBACK_LIBRARY_PATH)$/

/**
 * The environment of a process that we start for ourselves: nothing of ours is in it but this.
 *
 * Where root starts us, PostgreSQL runs as an account that others use, too, and whatever runs as that account may read it
 * (`/proc/PID/environ`): a client secret or the token of the control API has no place there. Nor may a `PGDATA` or a
 * `NODE_OPTIONS` that was meant for something else change what is started.
 */
export function childEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && handedOn.test(entry[0])),
  )
}
