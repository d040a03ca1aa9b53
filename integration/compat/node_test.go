package compat

import "testing"

var node = []program{
	{file: "node.js", needs: "node", want: "worker 42\nexec 2 3\nfork child\nwasm 5\ncpus 1\n"},
	{file: "npm.sh", needs: "bash node npm", want: "42\na dependency\n"},
	{file: "typescript.sh", needs: "bash node tsc",
		want: "n=42\nb.ts(1,7): error TS2322: Type 'number' is not assignable to type 'string'.\nexit 2\n"},
}

func TestNode(t *testing.T) { each(t, node) }
