use strict; use Socket; use IO::Socket; use POSIX ();
defined(my $pid = fork) or die; exit 5 unless $pid; waitpid $pid, 0; $? == 5 << 8 or die "fork $?";
`echo hi` eq "hi\n" or die "backticks"; system("sh", "-c", "exit 3") == 3 << 8 or die "system";
my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $!;
my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) or die $!;
my $d = $s->accept; print $d "x\n"; $d->flush; <$c> eq "x\n" or die;
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!;
open my $f, ">", "/tmp/f" or die; print $f "abc"; close $f; -s "/tmp/f" == 3 or die; rename "/tmp/f", "/tmp/g" or die; unlink "/tmp/g" or die;
select undef, undef, undef, 0.001; $SIG{ALRM} = sub { print "PASS\n"; exit }; alarm 1; sleep 60;
