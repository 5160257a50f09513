package sqlstore

import "os"

// permissions are none: Windows says who may use a file in another way.
func permissions(os.FileInfo) os.FileMode { return 0 }
