// SPDX-License-Identifier: Apache-2.0
// Reads metadata documents from standard input, one per line after the word `table` or `view`, and answers each with a
// line: `read`, or `refused` and the error of iceberg-go.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		kind, document, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		if err := read(string(kind), document); err != nil {
			fmt.Println("refused", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("read")
		}
	}
}

// read parses a document and writes it again, as a commit does. A panic of the library is an error.
func read(kind string, document []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	var metadata any
	if kind == "view" {
		metadata, err = view.ParseMetadataBytes(document)
	} else {
		metadata, err = table.ParseMetadataBytes(document)
	}
	if err == nil {
		_, err = json.Marshal(metadata)
	}
	return err
}
