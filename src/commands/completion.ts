import { Argument, type Command } from 'commander'
import { commandTree, completionScript, type Shell, shells } from './terminal/completion.ts'
import { type CommandContext, exit } from './terminal/context.ts'

export function describeCompletion(command: Command): Command {
  return command
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'for which shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  outboxd completion bash > /etc/bash_completion.d/outboxd
  outboxd completion zsh > /usr/local/share/zsh/site-functions/_outboxd
  outboxd completion fish > ~/.config/fish/completions/outboxd.fish
  source <(outboxd completion bash)      for this shell alone`,
    )
}

/** Prints the script, made from what `--help` is made from. */
export async function completion(context: CommandContext, program: Command, shell: Shell): Promise<number> {
  context.stdout.write(completionScript(shell, commandTree(program)))
  return exit.done
}
