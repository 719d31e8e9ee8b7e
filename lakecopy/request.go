package lakecopy

import (
	"context"
	"fmt"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
)

// A COPY that an agent asked for runs, once a person approved it, with what both of them may: each check of Copy is made for
// the person who approved, and again, freshness aside, for who asked.

// Foresee says what a COPY would do that somebody asks to have approved: Explain for who may ask and not run. Its errors
// are those that the run would have, so that nobody is asked to approve what cannot run.
func (s *Service) Foresee(ctx context.Context, asker access.Principal, src Source, stmt sqlguard.Copy) (Plan, error) {
	lake, target, err := s.admitAsker(asker, src, stmt)
	if err != nil {
		return Plan{}, err
	}
	return s.plan(ctx, lake, target, src, stmt, mayRead(asker, src))
}

// AdmitRequested says whether approver may let the COPY run now that asker asked for. Its errors are those of CopyRequested.
func (s *Service) AdmitRequested(ctx context.Context, approver access.Principal, asker access.CopyAsker, src Source, stmt sqlguard.Copy) error {
	_, _, _, err := s.admitRequested(ctx, approver, asker, src, stmt)
	return err
}

// CopyRequested runs a COPY that asker asked for and approver approved, as Copy does. job is its job's id, the request's.
func (s *Service) CopyRequested(ctx context.Context, approver access.Principal, asker access.CopyAsker, src Source, stmt sqlguard.Copy, text, job string) (Result, error) {
	if job == "" {
		return Result{}, fault.Bug("lakecopy: a requested COPY without the id of its request")
	}
	leave, err := s.runs.begin()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	lake, target, who, err := s.admitRequested(ctx, approver, asker, src, stmt)
	if err != nil {
		return Result{}, err
	}
	his, theirs := mayRead(approver, src), mayRead(who, src)
	return s.copy(ctx, permit{who: approver, asker: &asker, lake: lake, path: target, job: job,
		may: func(r sqlguard.Relation) bool { return his(r) && theirs(r) }}, src, stmt, text)
}

func (s *Service) admitRequested(ctx context.Context, approver access.Principal, asker access.CopyAsker, src Source, stmt sqlguard.Copy) (*lake, string, access.Principal, error) {
	none := access.Principal{}
	if stmt.Explain {
		return nil, "", none, fault.Bug("lakecopy: EXPLAIN COPY is no request")
	}
	target, err := access.Path(stmt.Path)
	if err != nil {
		return nil, "", none, err
	}
	who, err := s.askerNow(ctx, asker)
	if err != nil {
		return nil, "", none, err
	}
	if err := access.MayApproveCopy(approver, who, src.Name(), access.Folder{Connection: stmt.Connection, Path: target}, s.moment()); err != nil {
		return nil, "", none, err
	}
	lake, err := s.destination(stmt, target)
	return lake, target, who, err
}

// admitAsker checks who may ask for a COPY to where, before the query is looked at.
func (s *Service) admitAsker(asker access.Principal, src Source, stmt sqlguard.Copy) (*lake, string, error) {
	target, err := access.Path(stmt.Path)
	if err != nil {
		return nil, "", err
	}
	if err := access.MayAskForCopy(asker, src.Name(), access.Folder{Connection: stmt.Connection, Path: target}); err != nil {
		return nil, "", err
	}
	lake, err := s.destination(stmt, target)
	return lake, target, err
}

// askerNow is who asked, with the rights of now. A key has those of its lists, too; a person's login, which may have ended
// meanwhile, those of the person.
func (s *Service) askerNow(ctx context.Context, asker access.CopyAsker) (access.Principal, error) {
	if s.rights == nil {
		return access.Principal{}, fail(KindAuth, "nobody has the right to publish files: this server knows no rights")
	}
	var who access.Principal
	var err error
	if asker.Login {
		who, err = s.rights.OfUser(ctx, asker.Owner)
	} else {
		who, err = s.rights.Again(ctx, access.Principal{KeyID: asker.Key, Owner: asker.Owner})
	}
	switch code := fault.CodeOf(err); {
	case err != nil && ctx.Err() != nil:
		return access.Principal{}, canceled(ctx)
	case err != nil && (code == fault.Unauthenticated || code == fault.NotFound || code == fault.Denied):
		return access.Principal{}, fail(KindAuth, "the key or user that asked for this copy is not valid any more")
	case err != nil:
		return access.Principal{}, fmt.Errorf("lakecopy: ask again who asked for a copy: %w", err)
	}
	if who.Owner != asker.Owner {
		return access.Principal{}, fail(KindAuth, "the key that asked for this copy belongs to somebody else now")
	}
	return who, nil
}
