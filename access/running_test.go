package access

import "testing"

func TestWhoSeesARunningStatement(t *testing.T) {
	of := func(id, owner string, p Principal) Principal { p.KeyID, p.Owner = id, owner; return p }
	narrow := func(p Principal) Principal { p.Tables = []string{"shop.orders"}; return p }
	agent := func(p Principal) Principal { p.Agent = true; return p }
	ann, annKey := of("login_1", "ann", loginOf(ReadWrite)), of("key_1", "ann", keyOf(ReadWrite, ReadWrite))
	bob := of("login_2", "bob", loginOf(ReadWrite))
	forAnn, forBob := agent(of("key_9", "ann", keyOf(ReadOnly, ReadOnly))), agent(of("key_9", "bob", keyOf(ReadOnly, ReadOnly)))
	for sentence, row := range map[string]struct {
		p, by Principal
		want  bool
	}{
		"one's own":                                 {ann, ann, true},
		"a person, of another login":                {ann, of("login_3", "ann", loginOf(ReadWrite)), true},
		"a person, of a key of theirs":              {ann, annKey, true},
		"a person, of their narrowed key":           {ann, narrow(annKey), true},
		"a person, of an agent's key of theirs":     {ann, agent(annKey), true},
		"a person, of a program that acts for them": {ann, forAnn, true},
		"a key, of its owner":                       {annKey, ann, true},
		"a key with a lower role, of its owner":     {of("key_2", "ann", keyOf(ReadOnly, ReadWrite)), ann, false},
		"a restricted key, of its owner":            {of("key_2", "ann", keyOf(Restricted, ReadWrite)), ann, false},
		"a key with a lower role, of its like":      {of("key_2", "ann", keyOf(ReadOnly, ReadWrite)), of("key_3", "ann", keyOf(Restricted, ReadWrite)), true},
		"a narrowed key, of its owner":              {narrow(annKey), ann, false},
		"a narrowed key, its own":                   {narrow(annKey), narrow(annKey), true},
		"a key narrowed by a grant, of its owner":   {changed(annKey, func(p *Principal) { p.KeyID, p.Own = "key_4", []Grant{orders} }), ann, false},
		"an agent's key, of its owner":              {agent(annKey), ann, false},
		"an agent's key, its own":                   {agent(annKey), agent(annKey), true},
		"somebody else":                             {bob, ann, false},
		"somebody else's key":                       {of("key_5", "bob", keyOf(ReadWrite, ReadWrite)), annKey, false},
		"one key, acting for the same":              {forAnn, forAnn, true},
		"one key, acting for somebody else":         {forBob, forAnn, false},
		"a program that acts for them, of a person": {forAnn, ann, false},
		"an admin":                                      {loginOf(Admin), bob, true},
		"the admin's key":                               {admin(), bob, true},
		"an admin's key that will end":                  {with(func(p *Principal) { p.ExpiresAt = noon }), bob, true},
		"an admin's narrowed key":                       {narrow(admin()), bob, false},
		"an admin's key for models":                     {with(func(p *Principal) { p.Models = []string{"m"} }), bob, false},
		"an admin's key, narrowed by a grant":           {with(func(p *Principal) { p.Own = []Grant{shop} }), bob, false},
		"an admin's agent key":                          {agent(admin()), bob, false},
		"an admin's read_write key":                     {of("key_6", BootstrapOwner, keyOf(ReadWrite, Admin)), bob, false},
		"a user's admin key":                            {of("key_7", "ann", keyOf(Admin, ReadWrite)), bob, false},
		"nobody":                                        {Principal{}, ann, false},
		"nobody, of nobody":                             {Principal{}, Principal{}, false},
		"an admin, of nobody":                           {admin(), Principal{}, false},
		"one's own, after one's role was taken":         {of("login_1", "ann", loginOf(NoRole)), ann, false},
		"a person, of a key whose role nobody knows":    {ann, of("key_8", "ann", keyOf(99, ReadWrite)), false},
		"a person whose role is lower now than it was":  {of("login_3", "ann", loginOf(ReadOnly)), ann, false},
		"the same name, another key: no accidental hit": {of("key_1", "bob", keyOf(ReadOnly, ReadOnly)), annKey, false},
	} {
		if got := MayStatement(row.p, row.by); got != row.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}
