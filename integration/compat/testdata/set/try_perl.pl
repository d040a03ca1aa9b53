use strict;
use warnings;
use threads;
use List::Util 'sum';
use POSIX;
use Socket;

print threads->create(sub { "a thread" })->join, " ", sum(1 .. 10), " ", `echo a child`;
my $pid = fork;
_exit(3) if !$pid;
waitpid $pid, 0;
print "exit ", $? >> 8, "\n";
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
syswrite $a, "a socket\n";
sysread $b, my $text, 100;
print $text;
