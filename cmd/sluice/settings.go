package main

import (
	"os"

	"github.com/spf13/cobra"

	"sluice/config"
)

// settingsFlags are the flags of the commands that read a server's settings.
type settingsFlags struct{ file, listen, home string }

func (f *settingsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "config", "", "settings file, sluice.yaml")
	cmd.Flags().StringVar(&f.listen, "listen", "", "address, host:port")
	cmd.Flags().StringVar(&f.home, "home", "", "folder of the control store, models and the default database and lake")
}

// loader gives what reads the settings of a file, "" for none: flags go before variables, and those before the file.
func (f *settingsFlags) loader() (func(file string) (*config.Config, error), error) {
	userHome, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	env := func(name string) string {
		switch {
		case name == "SLUICE_HOST" && f.listen != "":
			return f.listen
		case name == "SLUICE_HOME" && f.home != "":
			return f.home
		}
		return os.Getenv(name)
	}
	return func(file string) (*config.Config, error) { return config.Load(file, userHome, env) }, nil
}
