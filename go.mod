module sandglass

go 1.26.0

require golang.org/x/sys v0.50.0

require github.com/seccomp/libseccomp-golang v0.12.0
