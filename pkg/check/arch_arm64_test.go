package check

const auditArch = 0xc00000b7
