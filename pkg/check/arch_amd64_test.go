package check

const auditArch = 0xc000003e
