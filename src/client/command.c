/*-------------------------------------------------------------------------
 *
 * command.c
 *	  The command that ddblock-run runs: its process group, its signals, its terminal.
 *
 * The command leads a process group of its own, so that one signal reaches all processes that it
 * has started.  If ddblock-run is in the foreground of a terminal, the command's group takes its
 * place there until the command has ended.
 *
 * We leave a command that has ended as a zombie.  So no other process or group can get its process
 * ID, to which we may still send a signal.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"


#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int ending_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

command_state command;

static pid_t our_group;
static pid_t command_pid;
static bool told_to_end;

/* Puts a group into the foreground of the terminal in place of another, if that one is there. */
static void
pass_terminal(pid_t from, pid_t to)
{
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == from)
		(void) tcsetpgrp(STDIN_FILENO, to);
}

/* In the child process: becomes the command. */
static void
become(char **argv, pid_t parent, const sigset_t *old_signals)
{
	(void) setpgid(0, 0);
	pass_terminal(our_group, getpid());
	/* If ddblock-run dies, the kernel kills the command: it must not outlive a lost lock. */
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_OURS);
	sigprocmask(SIG_SETMASK, old_signals, NULL);
	execvp(argv[0], argv);
	say("could not run \"%s\": %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC);
}

void
command_start(char **argv)
{
	pid_t		parent = getpid();
	sigset_t	ours;
	sigset_t	old_signals;

	our_group = getpgrp();

	/*
	 * We need SIGCHLD to see the command's end, even if the process that has started us ignores
	 * it.  Other signals that are ignored, as by nohup, stay ignored.
	 */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++)
	{
		struct sigaction old;

		if (sigaction(ending_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&ours, ending_signals[i]);
	}
	command.signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	sigaddset(&ours, SIGTTOU);	/* would stop us in pass_terminal() */
	sigprocmask(SIG_BLOCK, &ours, &old_signals);

	command_pid = command.signals >= 0 ? fork() : -1;
	if (command_pid < 0)
		die("could not run the command: %s", strerror(errno));
	if (command_pid == 0)
		become(argv, parent, &old_signals);
	(void) setpgid(command_pid, command_pid);
	command.runs = true;
	signal(SIGPIPE, SIG_IGN);
}

/*
 * Finds out whether the command has ended.  If Ctrl-Z (SIGTSTP) has stopped it, lets it go on:
 * others may wait for the lock.
 */
static void
look(void)
{
	siginfo_t	ended = {0};
	siginfo_t	stopped = {0};

	if (waitid(P_PID, (id_t) command_pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0)
	{
		say("could not learn how the command has ended: %s", strerror(errno));
		command.status = EXIT_OURS;
		command.runs = false;
	}
	else if (ended.si_pid != 0)
	{
		command.status = ended.si_code == CLD_EXITED ?
			ended.si_status : EXIT_SIGNAL + ended.si_status;
		command.runs = false;
	}
	else if (waitid(P_PID, (id_t) command_pid, &stopped, WSTOPPED | WNOHANG) == 0 &&
			 stopped.si_pid != 0 && stopped.si_status == SIGTSTP)
		(void) kill(-command_pid, SIGCONT);
	if (!command.runs)
		pass_terminal(command_pid, our_group);
}

int
command_read_signals(void)
{
	struct signalfd_siginfo info;
	int			ending = 0;

	while (read(command.signals, &info, sizeof(info)) == sizeof(info))
	{
		if (info.ssi_signo == SIGCHLD)
			continue;
		ending = (int) info.ssi_signo;
		if (!command.runs)
			continue;
		(void) kill(-command_pid, ending);
		(void) kill(-command_pid, SIGCONT);	/* a stopped process does not handle a signal */
	}
	if (command.runs)
		look();
	return ending;
}

void
command_end(bool at_once)
{
	if (command.runs && !told_to_end)
	{
		say("ending the command");
		if (kill(-command_pid, SIGTERM) != 0)
			say("could not end the command: %s", strerror(errno));
		(void) kill(-command_pid, SIGCONT);
		told_to_end = true;
	}
	if (at_once)
		(void) kill(-command_pid, SIGKILL);
}
